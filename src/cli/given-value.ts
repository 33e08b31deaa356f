import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

/** A value of the command line: JSON, or `-` for JSON on standard input. @throws CommandError */
export async function givenValue(given: string, stdin: Readable): Promise<unknown> {
  const json = given === '-' ? await text(stdin) : given
  try {
    return JSON.parse(json) as unknown
  } catch {
    throw new CommandError(`the value takes JSON, such as 42, '"text"' or '{"a":1}'`, EXIT.usage)
  }
}
