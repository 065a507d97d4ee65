"""Every name that leaves the house in telemetry, in one place.

The GenAI conventions still move, and the constants that libraries ship for them are
deprecated; the strings are pinned here, and a test holds each of them. There is no accepted
name for a handoff, so those are our own.
"""

from typing import Final

SCOPE: Final = "agent_run"
SERVICE: Final = "agent-run"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
WORKFLOW: Final = "gen_ai.workflow.name"
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - tokens of text
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
EVALUATION: Final = "gen_ai.evaluation.name"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
ERROR: Final = "error.type"

INVOKE_WORKFLOW: Final = "invoke_workflow"
PLAN: Final = "plan"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
CHAT: Final = "chat"

TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - tokens of text
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
WORKFLOW_DURATION: Final = "gen_ai.invoke_workflow.duration"

HANDOFF: Final = "agent_run.handoff"
TASK: Final = "agent_run.task.id"
OUTCOME: Final = "agent_run.outcome"
GATE_REASON: Final = "agent_run.gate.reason"
GATE_CACHED: Final = "agent_run.gate.cached"
ATTEMPT: Final = "agent_run.attempt"
CLAIM: Final = "agent_run.claim"
OWNER: Final = "agent_run.owner"
CONFIDENCE: Final = "agent_run.confidence"
FENCE: Final = "agent_run.fence"
CALL: Final = "agent_run.call.key"
TOKENS: Final = "agent_run.usage.tokens"
REQUESTS: Final = "agent_run.usage.requests"
COST: Final = "agent_run.usage.cost_usd"
STEPS: Final = "agent_run.plan.steps"
BY: Final = "agent_run.answered.by"
