//! The routing policy of a configuration: a built-in one, or one that a program registered, guarded.
//!
//! Layer: host. A panic or an impossible path of a registered policy is an error of its experiment. Routes of a file are not policies by name: see `route`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hyperfold_base::isolation::message_of_panic;
use hyperfold_config::spec::{Config, KeyId, PolicyChoice, PolicyRegistry, RegisteredPolicy, key};
use hyperfold_network::routing::{
    FlowKey, FlowPaths, PolicyKeys, RouteError, Router, RoutingPolicy, routing_policy, wrong_paths,
};

/// Adds a routing policy to a registry, by name and version.
///
/// # Errors
/// The name or the version is not allowed, or the name is taken.
pub fn register_routing_policy(
    registry: &mut PolicyRegistry,
    name_and_version: (&str, &str),
    policy: Box<dyn RoutingPolicy>,
) -> Result<(), String> {
    key(KeyId::Policy).register(registry, name_and_version, Box::new(policy))
}

/// Returns the routing policy that a configuration names; `None`: a file lists the routes.
pub fn named_routing_policy(config: &Config) -> Option<Box<dyn RoutingPolicy>> {
    match &config.routing.policy {
        PolicyChoice::File { .. } => None,
        PolicyChoice::Registered(policy) => Some(Box::new(GuardedRouting(policy.clone()))),
        PolicyChoice::Named { name, max_paths } => {
            let keys = PolicyKeys { seed: config.routing.seed, max_paths: *max_paths };
            Some(routing_policy(name, keys).expect("choices of the key are the registry's names"))
        }
    }
}

/// A registered policy. It returns only paths that packets can take.
#[derive(Debug)]
struct GuardedRouting(RegisteredPolicy);

impl GuardedRouting {
    /// Calls the policy's code.
    ///
    /// # Errors
    /// It panicked; the text has the message.
    fn call<T>(&self, code: impl FnOnce(&dyn RoutingPolicy) -> T) -> Result<T, String> {
        let policy = self.0.code::<Box<dyn RoutingPolicy>>();
        let policy = policy.expect("`register_routing_policy` alone registers values of this key");
        // The experiment ends here, so nobody sees what the code left half changed.
        catch_unwind(AssertUnwindSafe(|| code(&**policy)))
            .map_err(|payload| format!("it panicked: {}", message_of_panic(&*payload)))
    }
}

impl RoutingPolicy for GuardedRouting {
    fn paths(&self, router: &Router, flow: &FlowKey, link: Option<u32>) -> Result<FlowPaths, RouteError> {
        let fault = |why: String| RouteError::Policy { policy: self.0.in_words(), flow: flow.id, why };
        let paths = self.call(|policy| policy.paths(router, flow, link)).map_err(fault)??;
        match wrong_paths(router.network(), flow, &paths) {
            Some(why) => Err(fault(why)),
            None => Ok(paths),
        }
    }

    fn sprays(&self) -> bool {
        self.call(|policy| policy.sprays()).unwrap_or(false)
    }

    fn takes_turns(&self) -> bool {
        self.call(|policy| policy.takes_turns()).unwrap_or(false)
    }

    fn is_adaptive(&self) -> bool {
        self.call(|policy| policy.is_adaptive()).unwrap_or(false)
    }
}
