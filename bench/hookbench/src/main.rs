//! hookbench HOOKS ROUNDS TOOL_INPUT: prints the nanoseconds that one PreToolUse takes, a line for each round.
use claude_agent::hooks::{FnHook, HookContext, HookEvent, HookInput, HookManager, HookOutput};
use std::time::Instant;

const EVENTS: u32 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (hooks, rounds): (usize, usize) = (arguments[1].parse().unwrap(), arguments[2].parse().unwrap());
    let tool_input: serde_json::Value = serde_json::from_str(&arguments[3]).unwrap();
    let mut manager = HookManager::new();
    for number in 0..hooks {
        manager.register(
            FnHook::<()>::builder(format!("h{number}"), vec![HookEvent::PreToolUse])
                .tool_matcher("Bash")
                .handler(|_input: HookInput, _context: HookContext| async { Ok(HookOutput::allow()) }),
        );
    }
    let context = HookContext::new("session");
    for _ in 0..=rounds {
        let begun = Instant::now();
        for _ in 0..EVENTS {
            let input = HookInput::pre_tool_use("session", "Bash", tool_input.clone());
            manager.execute(HookEvent::PreToolUse, input, &context).await.unwrap();
        }
        println!("{}", begun.elapsed().as_nanos() / u128::from(EVENTS));
    }
}
