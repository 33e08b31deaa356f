import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

/** Parses a value of the command line: JSON, or `-` for JSON on standard input. @throws CommandError */
export async function readValue(argument: string, stdin: Readable): Promise<unknown> {
  const json = argument === '-' ? await text(stdin) : argument
  try {
    return JSON.parse(json) as unknown
  } catch {
    throw new CommandError(
      `invalid JSON: the value must be JSON, such as 42, '"text"' or '{"a":1}'`,
      EXIT.usage,
    )
  }
}
