# Hyperfold for GPU boxes and clusters:
#
#   docker build -t hyperfold .
#   docker run --rm --gpus all hyperfold doctor
#   docker run --rm --gpus all -v "$PWD:/data" hyperfold run sweep.toml --out results --engine gpu
#
# docs/how-to/containers.md says how a GPU's Vulkan driver gets into a container, and what to do where it does not.

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin hyperfold

FROM debian:trixie-slim
# libvulkan1 finds drivers. The driver itself is the host's and is mounted when the container starts; NVIDIA's needs libX11 and libXext (GLX) or libEGL's
# dispatch (EGL) even where there is no display.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libvulkan1 libx11-6 libxext6 libegl1 \
    && rm -rf /var/lib/apt/lists/*
# For hosts whose toolkit mounts the driver's libraries without its registration: -e VK_DRIVER_FILES=/usr/local/share/hyperfold/nvidia_egl.json
RUN mkdir -p /usr/local/share/hyperfold \
    && printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.3.0"}}\n' \
        > /usr/local/share/hyperfold/nvidia_egl.json
COPY --from=build /src/target/release/hyperfold /usr/local/bin/hyperfold
COPY --from=build /src/LICENSE-MIT /src/LICENSE-APACHE /usr/local/share/hyperfold/
# NVIDIA's runtime mounts only what is asked for, by default CUDA alone: Vulkan belongs to `graphics`.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics
WORKDIR /data
ENTRYPOINT ["hyperfold"]
CMD ["doctor"]
