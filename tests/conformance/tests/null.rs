//! The suite on the null backend, in every form and mode.

mod common;

use common::suite;
use wharf_conformance::{Mode::*, Target::*};

#[test]
fn static_with_a_pump() {
    suite(&Static("null"), Pump, false);
}
#[test]
fn static_without_a_pump() {
    suite(&Static("null"), NoPump, false);
}
#[test]
fn static_one_step_at_a_time() {
    suite(&Static("null"), Depth1, false);
}
#[test]
fn static_without_native_waits() {
    suite(&Static("null"), NoNativeWait, false);
}
#[test]
fn tables_with_a_pump() {
    suite(&Tables("null"), Pump, false);
}
#[test]
fn tables_without_a_pump() {
    suite(&Tables("null"), NoPump, false);
}
#[test]
fn tables_one_step_at_a_time() {
    suite(&Tables("null"), Depth1, false);
}
#[test]
fn tables_without_native_waits() {
    suite(&Tables("null"), NoNativeWait, false);
}
#[test]
fn plugin_with_a_pump() {
    suite(&Built("null"), Pump, false);
}
#[test]
fn plugin_without_a_pump() {
    suite(&Built("null"), NoPump, false);
}
#[test]
fn plugin_one_step_at_a_time() {
    suite(&Built("null"), Depth1, false);
}
#[test]
fn plugin_without_native_waits() {
    suite(&Built("null"), NoNativeWait, false);
}
#[test]
fn static_under_layers() {
    suite(&Static("null"), Layers, false);
}
#[test]
fn static_with_ends_in_another_order() {
    suite(&Static("null"), Reordered, false);
}
#[test]
fn tables_under_layers() {
    suite(&Tables("null"), Layers, false);
}
#[test]
fn tables_with_ends_in_another_order() {
    suite(&Tables("null"), Reordered, false);
}
#[test]
fn plugin_under_layers() {
    suite(&Built("null"), Layers, false);
}
#[test]
fn plugin_with_ends_in_another_order() {
    suite(&Built("null"), Reordered, false);
}
