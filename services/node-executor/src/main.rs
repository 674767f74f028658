//! The node-executor's process.

fn main() -> std::process::ExitCode {
    service_kit::main("node-executor", node_executor::run)
}
