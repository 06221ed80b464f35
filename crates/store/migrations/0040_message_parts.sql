-- A message of a conversation was a text, and is a list of parts now.
--
--   {"role":"user","text":T}                    parts: the text
--   {"role":"assistant","text":T,"tool_calls"}  parts: the text, where there is any, and each call
--   {"role":"tool","call_id":C,"content":T}     parts: the text
--
-- `->` hands a value over as the JSON it is, so that no text is decoded and encoded again. The CASE keeps
-- rows out that are no such message: SQLite promises no order for the conditions of a WHERE.
UPDATE history
SET message = CASE message ->> '$.message.role'
    WHEN 'user' THEN json_object(
        'row', json(message -> '$.row'),
        'message', json_object(
            'role', 'user',
            'parts', json_array(json_object('type', 'text', 'text', json(message -> '$.message.text')))
        )
    )
    WHEN 'tool' THEN json_object(
        'row', json(message -> '$.row'),
        'message', json_object(
            'role', 'tool',
            'call_id', json(message -> '$.message.call_id'),
            'parts', json_array(json_object('type', 'text', 'text', json(message -> '$.message.content')))
        )
    )
    WHEN 'assistant' THEN json_object(
        'row', json(message -> '$.row'),
        'message', json_object(
            'role', 'assistant',
            'parts', (
                SELECT json_group_array(json(part) ORDER BY place)
                FROM (
                    SELECT -1 AS place,
                           json_object('type', 'text', 'text', json(message -> '$.message.text')) AS part
                    WHERE message -> '$.message.text' <> '""'
                       OR json_array_length(message, '$.message.tool_calls') IS NULL
                    UNION ALL
                    SELECT key,
                           json_object(
                               'type', 'tool_call',
                               'id', json(value -> '$.id'),
                               'name', json(value -> '$.name'),
                               'arguments', json(value -> '$.arguments')
                           )
                    FROM json_each(message, '$.message.tool_calls')
                )
            )
        )
    )
    ELSE message
END
WHERE CASE
    WHEN json_valid(message)
        THEN message -> '$.message.parts' IS NULL
            AND CASE message ->> '$.message.role'
                WHEN 'tool' THEN json_type(message, '$.message.content') = 'text'
                ELSE json_type(message, '$.message.text') = 'text'
            END
    ELSE FALSE
END;
