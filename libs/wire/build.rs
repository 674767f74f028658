//! Compiles `proto/` at build time; needs `protoc`.

fn main() -> std::io::Result<()> {
    let protos = [
        "../../proto/podwright/v1/order.proto",
        "../../proto/podwright/v1/presence.proto",
    ];
    prost_build::Config::new().compile_protos(&protos, &["../../proto"])
}
