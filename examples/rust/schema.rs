//! Prints the JSON Schema of policy files:
//! `cargo run -p tidegate --features schema --example schema > policy/policy.schema.json`

fn main() {
    println!("{:#}", tidegate::schema());
}
