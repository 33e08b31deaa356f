import { OPCODE, type Call } from './call.js'
import { refusal, type RefusedError } from './errors.js'
import type { JuteReader } from './jute-reader.js'

/** The outcome of a multi. */
export type MultiOutcome =
  /** All parts were applied; their results in order. */
  | { readonly done: true; readonly answers: readonly unknown[] }
  /** None was applied, because of one part. */
  | { readonly done: false; readonly index: number; readonly error: RefusedError }

/** The type before the error of a part, and after the last part. */
export const NO_PART = -1
/** Maximum number of parts that a message names. */
const MAX_NAMED = 8
/** The error codes of parts that succeeded, and of parts after the one that failed. */
const NOT_AT_FAULT = new Set([0, -2])

/** Several changes and checks that are applied together or not at all. */
export function multi(parts: readonly Call<unknown>[]): Call<MultiOutcome> {
  return {
    name: `multi of ${parts.length > MAX_NAMED ? `${parts.length} parts` : parts.map(({ name }) => name).join(', ')}`,
    opcode: OPCODE.multi,
    path: parts[0]?.path ?? '/',
    repeatable: false,
    write(writer) {
      for (const part of parts) {
        writer.int(part.opcode).bool(false).int(-1)
        part.write(writer)
      }
      writer.int(NO_PART).bool(true).int(-1)
    },
    read: reader => readOutcome(reader, parts),
  }
}

function readOutcome(reader: JuteReader, parts: readonly Call<unknown>[]): MultiOutcome {
  const answers: unknown[] = []
  let failed: { index: number; error: RefusedError } | undefined
  for (const [index, part] of parts.entries()) {
    const type = reader.int()
    reader.bool()
    reader.int()
    if (type !== NO_PART) {
      // Servers before 3.9 answer as if the older kind of creation had been requested.
      if (type === OPCODE.create && part.readPath) answers.push(part.readPath(reader))
      else answers.push(part.read(reader))
      continue
    }
    const number = reader.int()
    if (!failed && !NOT_AT_FAULT.has(number)) failed = { index, error: refusal(part.name, part.path, number) }
  }
  if (failed) return { done: false, ...failed }
  return { done: true, answers }
}
