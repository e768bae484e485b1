"""An agent that runs its own tools: each call is checked before it runs, and its result after (clients/python).

You provide `model` and `tools`:
    model(messages) -> (tool name, arguments), or None at the end
    tools = {"get_weather": get_weather, …}, declared with `toolgate serve --tools FILE` or Gate(…, tools=[…])
    session = toolgate.sync.Gate("/run/toolgate/toolgate.sock").session("chat-7")
"""


def run(model, tools, session, messages):
    while call := model(messages):
        checked = session.check(*call)
        outcome = session.run(checked, lambda: tools[checked.name](**checked.arguments))
        # what the model reads next: the feedback, or the result (redacted, shortened) with its notes
        messages.append({"tool": call[0], "reads": outcome.text})
        if outcome.halted:
            break
    return messages
