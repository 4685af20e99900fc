//! Registries of what can be added in one file: schedulers, placements, routing policies, failure models. Each has one line with its name, its constructor and
//! its description.
//!
//! Only the lines stand here, as macros: keys take the names and descriptions from them, the modules that are named take the constructors. So a new line
//! becomes a choice of its key and appears in the reference, without a second place. `docs/how-to/own-scheduler.md` has an example of each.

/// Choices of `scheduler.policy`; files of `src/cluster/queue_order`.
#[macro_export]
macro_rules! for_each_scheduler {
    ($declare:ident) => {
        $declare! {
            "fcfs" &fcfs::FirstCome, "first come first served";
            "backfill" &backfill::Backfill, "the same with EASY backfill";
            "sjf" &sjf::ShortestFirst, "shortest first";
            "priority" &priority::ByPriority, "by priority";
        }
    };
}

/// Choices of `scheduler.placement`; files of `src/cluster/placement`.
#[macro_export]
macro_rules! for_each_placement {
    ($declare:ident) => {
        $declare! {
            "packed" &packed::Packed, "as few servers as possible";
            "topology" &topology::Topology, "these in as few racks as possible";
            "spread" &spread::Spread, "as many servers as possible";
            "random" &random::Random, "by lot";
            "rail" &rail::Rail, "as few rails as possible";
        }
    };
}

/// Choices of `failures.model`; files of `src/cluster/failure`. `"trace"` is not among them, because its failures are listed.
#[macro_export]
macro_rules! for_each_failure_model {
    ($declare:ident) => {
        $declare! {
            "exponential" |_| Box::new(exponential::Exponential), "independently of a part's age";
            "weibull" |keys| Box::new(weibull::Weibull::new(keys.shape_milli)), "in clusters or by wear, by Weibull's distribution";
        }
    };
}

/// Choices of `routing.policy`; files of `src/network/routing/policy`. `"file"` is not among them, because its paths are listed.
#[macro_export]
macro_rules! for_each_routing_policy {
    ($declare:ident) => {
        $declare! {
            "ecmp" |keys| Box::new(ecmp::Ecmp { seed: keys.seed }), "a flow keeps one, by the hash of its addresses and ports";
            "spray" |keys| Box::new(spray::Spray { seed: keys.seed, max_paths: keys.max_paths }), "each packet of a flow takes one at random";
            "round-robin" |keys| Box::new(round_robin::RoundRobin { seed: keys.seed, max_paths: keys.max_paths }), "packets of a flow take all in turn, from a random one on each time";
            "entropy" |keys| Box::new(entropy::Entropy { seed: keys.seed, count: keys.max_paths }), "packets of a flow take in turn the paths of its entropies, which switches hash";
            "reps" |keys| Box::new(reps::Reps { seed: keys.seed, count: keys.max_paths }), "packets take entropies again whose packets arrived without a mark (REPS)";
            "mixed" |keys| Box::new(mixed::Mixed { seed: keys.seed, count: keys.max_paths }), "the same, and where no entropy is known to be good, all in turn but for those with a penalty";
            "adaptive" |keys| Box::new(adaptive::Adaptive { seed: keys.seed, max_paths: keys.max_paths }), "each switch sends a packet to one of the ports that lead on with the shortest queues";
            "destination" |keys| Box::new(destination::Destination { seed: keys.seed }), "all flows to a host take one, consecutive hosts the next one (D-mod-k, as InfiniBand routes)";
        }
    };
}

/// Each name with its constructor.
#[macro_export]
macro_rules! by_name {
    ($($name:literal $made:expr, $words:literal;)*) => { &[$(($name, $made)),*] };
}

/// The names, in their order.
#[macro_export]
macro_rules! names {
    ($($name:literal $made:expr, $words:literal;)*) => { &[$($name),*] };
}

/// The names, and `"trace"`.
#[macro_export]
macro_rules! names_and_trace {
    ($($name:literal $made:expr, $words:literal;)*) => { &[$($name,)* "trace"] };
}

/// The names, and `"file"`.
#[macro_export]
macro_rules! names_and_file {
    ($($name:literal $made:expr, $words:literal;)*) => { &[$($name,)* "file"] };
}

/// The names in one line.
#[macro_export]
macro_rules! listed {
    ($first:literal $made:expr, $words:literal; $($name:literal $more:expr, $others:literal;)*) => { concat!($first $(, ", ", $name)*) };
}

/// The descriptions in one line.
#[macro_export]
macro_rules! words {
    ($first:literal $made:expr, $words:literal; $($name:literal $more:expr, $others:literal;)*) => { concat!($words $(, "; ", $others)*) };
}
