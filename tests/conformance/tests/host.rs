//! The suite on the host backend: every case in every form and mode, and none is skipped.

mod common;

use common::suite;
use wharf_conformance::{Mode::*, Target::*};

#[test]
fn static_with_a_pump() {
    suite(&Static("host"), Pump, true);
}
#[test]
fn static_without_a_pump() {
    suite(&Static("host"), NoPump, true);
}
#[test]
fn static_one_step_at_a_time() {
    suite(&Static("host"), Depth1, true);
}
#[test]
fn static_without_native_waits() {
    suite(&Static("host"), NoNativeWait, true);
}
#[test]
fn tables_with_a_pump() {
    suite(&Tables("host"), Pump, true);
}
#[test]
fn tables_without_a_pump() {
    suite(&Tables("host"), NoPump, true);
}
#[test]
fn tables_one_step_at_a_time() {
    suite(&Tables("host"), Depth1, true);
}
#[test]
fn tables_without_native_waits() {
    suite(&Tables("host"), NoNativeWait, true);
}
#[test]
fn plugin_with_a_pump() {
    suite(&Built("host"), Pump, true);
}
#[test]
fn plugin_without_a_pump() {
    suite(&Built("host"), NoPump, true);
}
#[test]
fn plugin_one_step_at_a_time() {
    suite(&Built("host"), Depth1, true);
}
#[test]
fn plugin_without_native_waits() {
    suite(&Built("host"), NoNativeWait, true);
}
#[test]
fn static_under_layers() {
    suite(&Static("host"), Layers, true);
}
#[test]
fn static_with_ends_in_another_order() {
    suite(&Static("host"), Reordered, true);
}
#[test]
fn tables_under_layers() {
    suite(&Tables("host"), Layers, true);
}
#[test]
fn tables_with_ends_in_another_order() {
    suite(&Tables("host"), Reordered, true);
}
#[test]
fn plugin_under_layers() {
    suite(&Built("host"), Layers, true);
}
#[test]
fn plugin_with_ends_in_another_order() {
    suite(&Built("host"), Reordered, true);
}
