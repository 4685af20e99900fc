//! WGSL struct declarations, generated from the row types.

use std::fmt::Write;

use super::{Exp, FlowRx, FlowTx, IntVec, Nic, Packet, Plan, Port, Row, RttSample, Switch, Wire};

/// Declarations of all row structs.
pub fn declarations() -> String {
    let mut out = String::new();
    one::<Exp>(&mut out);
    one::<Nic>(&mut out);
    one::<Port>(&mut out);
    one::<Switch>(&mut out);
    one::<FlowTx>(&mut out);
    one::<FlowRx>(&mut out);
    one::<Packet>(&mut out);
    one::<IntVec>(&mut out);
    one::<Wire>(&mut out);
    one::<Plan>(&mut out);
    one::<RttSample>(&mut out);
    out
}

fn one<R: Row>(out: &mut String) {
    let _ = writeln!(out, "struct {} {{", R::NAME);
    for field in R::FIELDS {
        let _ = writeln!(out, "    {}: {},", field.name, field.wgsl);
    }
    let _ = writeln!(out, "}}\n");
}
