//! Links firmware for a bare target by the script of its board; on any other target the programs are ordinary ones.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=link");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let board = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("arm") => "mps2-an386.x",
        _ => "riscv-virt.x",
    };
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for every build script");
    for arg in [format!("-L{folder}/link"), format!("-T{board}"), "--gc-sections".to_owned()] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
}
