//! The suite on the DMA engine, in every form and mode.

mod common;

use common::suite;
use wharf_conformance::{Mode::*, Target::*};

#[test]
fn static_with_a_pump() {
    suite(&Static("dma"), Pump, false);
}
#[test]
fn static_without_a_pump() {
    suite(&Static("dma"), NoPump, false);
}
#[test]
fn static_one_step_at_a_time() {
    suite(&Static("dma"), Depth1, false);
}
#[test]
fn static_without_native_waits() {
    suite(&Static("dma"), NoNativeWait, false);
}
#[test]
fn tables_with_a_pump() {
    suite(&Tables("dma"), Pump, false);
}
#[test]
fn tables_without_a_pump() {
    suite(&Tables("dma"), NoPump, false);
}
#[test]
fn tables_one_step_at_a_time() {
    suite(&Tables("dma"), Depth1, false);
}
#[test]
fn tables_without_native_waits() {
    suite(&Tables("dma"), NoNativeWait, false);
}
#[test]
fn plugin_with_a_pump() {
    suite(&Built("dma"), Pump, false);
}
#[test]
fn plugin_without_a_pump() {
    suite(&Built("dma"), NoPump, false);
}
#[test]
fn plugin_one_step_at_a_time() {
    suite(&Built("dma"), Depth1, false);
}
#[test]
fn plugin_without_native_waits() {
    suite(&Built("dma"), NoNativeWait, false);
}
#[test]
fn static_under_layers() {
    suite(&Static("dma"), Layers, false);
}
#[test]
fn static_with_ends_in_another_order() {
    suite(&Static("dma"), Reordered, false);
}
#[test]
fn tables_under_layers() {
    suite(&Tables("dma"), Layers, false);
}
#[test]
fn tables_with_ends_in_another_order() {
    suite(&Tables("dma"), Reordered, false);
}
#[test]
fn plugin_under_layers() {
    suite(&Built("dma"), Layers, false);
}
#[test]
fn plugin_with_ends_in_another_order() {
    suite(&Built("dma"), Reordered, false);
}
