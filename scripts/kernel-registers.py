#!/usr/bin/env python3
"""Registers, spills and size of the kernels' code on an NVIDIA GPU, without a GPU.

    scripts/kernel-registers.py                    all kernels, workgroups of 128, for sm_90 (H100, H200)
    scripts/kernel-registers.py --arch sm_100      another architecture
    scripts/kernel-registers.py --workgroup 64     another size of workgroups
    scripts/kernel-registers.py --cc hpcc          flows under another congestion control than DCQCN; all: kernels with all parts

Needs `naga` (cargo install naga-cli --version 30.0.0) and, of PyPI, nvidia-cuda-nvrtc-cu12 (pip install; Linux). The kernels' WGSL becomes Metal's language by naga, that
becomes CUDA by this script, and NVRTC compiles it. A driver compiles SPIR-V with another front end, so figures are near those of a run and not the same: compare
them with each other.
"""
import argparse
import ctypes
import glob
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What Metal's library has and CUDA's has not.
SHIM = """
typedef unsigned int uint; typedef unsigned char uchar; typedef unsigned long long ulong; typedef long long ilong;
#define device
#define constant const
#define thread
#define threadgroup
namespace metal {
typedef unsigned int uint;
typedef unsigned int atomic_uint;
struct uint3 { uint x, y, z; };
struct __align__(16) uint4 {
    uint x, y, z, w;
    __device__ uint4() {}
    __device__ uint4(uint a, uint b, uint c, uint d) : x(a), y(b), z(c), w(d) {}
};
enum memory_order { memory_order_relaxed };
enum class mem_flags { mem_device, mem_threadgroup };
__device__ inline void threadgroup_barrier(mem_flags f) { if (f == mem_flags::mem_device) __threadfence(); __syncthreads(); }
#define CHANGE(name, f) __device__ inline uint atomic_fetch_##name##_explicit(volatile uint* p, uint v, memory_order) { return f((uint*)p, v); }
CHANGE(add, atomicAdd) CHANGE(sub, atomicSub) CHANGE(or, atomicOr) CHANGE(and, atomicAnd) CHANGE(min, atomicMin) CHANGE(max, atomicMax)
__device__ inline uint atomic_load_explicit(const volatile uint* p, memory_order) { return *p; }
__device__ inline void atomic_store_explicit(volatile uint* p, uint v, memory_order) { *p = v; }
template<class T> __device__ inline T min(T a, T b) { return a < b ? a : b; }
template<class T> __device__ inline T max(T a, T b) { return a > b ? a : b; }
template<class T, class U> __device__ inline T select(T a, U b, bool c) { return c ? (T)b : a; }
__device__ inline uint clz(uint x) { return __clz(x); }
__device__ inline uint ctz(uint x) { return x ? __ffs(x) - 1 : 32; }
__device__ inline uint popcount(uint x) { return __popc(x); }
}
template<class T, class U> __device__ inline T as_type(U u) { union { U u; T t; } x; x.u = u; return x.t; }
"""


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def wgsl(workgroup, cc, folder):
    """Path of the composed kernels."""
    root = pathlib.Path(__file__).resolve().parent.parent
    path = folder / "kernels.wgsl"
    env = dict(os.environ, HYPERFOLD_KERNELS_TO=str(path), HYPERFOLD_WORKGROUP=str(workgroup), HYPERFOLD_CC=cc)
    profile = os.environ.get("HYPERFOLD_TEST_PROFILE", "checked")
    run(["cargo", "test", "--profile", profile, "--test", "kernels", "--", "--ignored", "text::"], cwd=root, env=env)
    return path


def cuda(metal, workgroup):
    """CUDA of Metal's language as naga writes it."""
    text = re.sub(r"#include <[^>]*>|using metal::uint;", "", metal)
    text = re.sub(r"\[\[[^\]]*\]\]", "", text)
    # naga bounds loops that might not end. The engine asks for kernels without that.
    text = re.sub(r"\n\s*uint2 loop_bound\w* = [^\n]*|\n\s*if \(metal::all\([^\n]*\{ break; \}|\n\s*loop_bound\w* -= [^\n]*", "", text)
    text = re.sub(r"\blong\b", "ilong", text)
    text = re.sub(r"(\d)uL\b", r"\1ull", text)
    text = re.sub(r"(\d)L\b", r"\1ll", text)
    entries = re.findall(r"kernel void (\w+)\((.*?)\) \{", text, re.S)
    text = text.replace("kernel void", "__device__ __forceinline__ void")
    for name, parameters in entries:
        declared, arguments, shared = [], [], ""
        for one in (line.strip().lstrip(", ").strip() for line in parameters.split("\n")):
            if not one:
                continue
            if "uint3" in one:
                by_group = "group" in one
                arguments.append("metal::uint3{blockIdx.x, blockIdx.y, 0}" if by_group else "metal::uint3{blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y, 0}")
            elif re.match(r"uint \w+", one):
                arguments.append("threadIdx.x")
            elif found := re.match(r"threadgroup (\w+)& (\w+)", one):
                shared += f"__shared__ {found[1]} {found[2]};\n"
                arguments.append(found[2])
            else:
                kind, const, variable = re.match(r"(?:device|constant) (\w+)( const)?& (\w+)", one).groups()
                declared.append(f"{const or ''} {kind}* {variable}".strip())
                arguments.append(f"*{variable}")
        text += f'extern "C" __global__ void __launch_bounds__({workgroup}) k_{name}({", ".join(declared)}) {{ {shared} {name}({", ".join(arguments)}); }}\n'
    return SHIM + text


def nvrtc():
    """NVRTC, as PyPI's package has it, or as NVRTC names it."""
    named = os.environ.get("NVRTC")
    found = [named] if named else []
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        found += glob.glob(f"{folder}/cuda_nvrtc/lib/libnvrtc.so*")
    if not found:
        sys.exit("kernel-registers.py: NVRTC is missing: pip install nvidia-cuda-nvrtc-cu12, or set NVRTC to libnvrtc.so")
    # The library loads its second half by name.
    for builtins in glob.glob(f"{pathlib.Path(found[0]).parent}/libnvrtc-builtins.so*"):
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(found[0])


def compiled(source, arch):
    """What the compiler says of `source`."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    options = [b"--gpu-architecture=" + arch.encode(), b"-default-device", b"--std=c++17", b"-w", b"--ptxas-options=-v"]
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if failed:
        sys.exit(f"kernel-registers.py: NVRTC: {log.value.decode()[:2000]}")
    return log.value.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--workgroup", type=int, default=128)
    parser.add_argument("--cc", default="dcqcn")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text, metal = wgsl(args.workgroup, args.cc, folder), folder / "kernels.metal"
        run(["naga", str(text), str(metal), "--metal-version", "2.4"])
        log = compiled(cuda(metal.read_text(), args.workgroup), args.arch)
    print("kernel                 registers  spill stores  spill loads  stack bytes")
    for block in log.split("Compiling entry function")[1:]:
        kernel = re.search(r"'k_(\w+)'", block)[1]
        stack, stores, loads = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", block).groups()
        registers = re.search(r"Used (\d+) registers", block)[1]
        print(f"{kernel:<22} {registers:>9} {stores:>13} {loads:>12} {stack:>12}")


main()
