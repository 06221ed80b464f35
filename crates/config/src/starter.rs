//! What `hermetic config init` writes.

/// Every line that changes something is a comment: the file as written is the default.
pub const STARTER: &str = "\
# Hermetic reads this file once, at its start. `hermetic config check` tells what is wrong with it,
# `hermetic config show` what counts and why. Tokens belong into .env beside it.

gateway:
  # Where commands from chats run. `native` is a sandbox that needs nothing installed.
  # Others: docker, singularity, modal, daytona, ssh; `local` runs them on this machine.
  terminal_backend: native

  # Idle seconds before a conversation's sandbox is let go.
  sandbox_lifetime: 3600

  # The image, for backends that have one. If not written, terminal.docker_image.
  # sandbox_image: python:3.11

  # The way out of a sandbox. Nothing is reachable but what is named here.
  egress:
    mode: allowlist        # or closed, or open
    allow: []              # for example [pypi.org, files.pythonhosted.org, \"*.github.com\"]
    # ask: true            # ask in the chat about other hosts

terminal:
  # What one sandbox may use up.
  container_cpu: 1
  container_memory: 5120   # MB, or spelled: 5GB
  container_disk: 51200
  # timeout: 180           # seconds for one command

approvals:
  # Who is asked about a dangerous command where no sandbox protects: manual, smart or off.
  mode: manual
  timeout: 60              # silence is no

# model:
#   default: anthropic/claude-opus-4.6
#   provider: openrouter   # its key in .env: OPENROUTER_API_KEY=...

# platforms:
#   telegram:
#     enabled: true        # its token in .env: TELEGRAM_BOT_TOKEN=...
#     allowed_users: []    # ids; others get a pairing code
";
