import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'signalbox'
import type { History } from './history.js'

type Fits = (value: unknown) => boolean

const text: Fits = value => typeof value === 'string'
/** `JSON.parse` returns Infinity for a number that is too great. */
const number: Fits = value => Number.isFinite(value)
const notNegative: Fits = value => number(value) && (value as number) >= 0
const flag: Fits = value => typeof value === 'boolean'
const token: Fits = value => text(value) && /^\d+$/.test(value as string)
const optional =
  (fits: Fits): Fits =>
  value =>
    value === undefined || fits(value)
const absent: Fits = value => value === undefined
const oneOf =
  (...values: readonly unknown[]): Fits =>
  value =>
    values.includes(value)
const each =
  (fits: Fits): Fits =>
  value =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(fits)
const list =
  (fits: Fits): Fits =>
  value =>
    Array.isArray(value) && value.every(fits)
/** A record with at least these fields. */
const shaped =
  (fields: Readonly<Record<string, Fits>>): Fits =>
  value =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(fields).every(([name, fits]) => fits((value as Record<string, unknown>)[name]))

const request = shaped({
  who: text,
  key: text,
  asked: number,
  queued: optional(number),
  granted: optional(number),
  token: optional(token),
  heldUntil: optional(number),
  leaving: optional(number),
  left: optional(number),
  end: oneOf(undefined, 'refused', 'released', 'lost', 'unknown'),
})
/** A record with a field `until` that is not before the field that `from` names. */
const lasting =
  (from: string, fits: Fits): Fits =>
  value => {
    if (!fits(value)) return false
    const record = value as Record<string, number>
    return record[from]! <= record.until!
  }
const granted = shaped({ granted: number, heldUntil: number })
const neverGranted = shaped({ granted: absent, token: absent, heldUntil: absent })
const released = shaped({ leaving: number, left: number })

/** The file that `--history` writes. */
const history: Readonly<Record<keyof History, Fits>> = {
  lease: notNegative,
  limits: each(notNegative),
  requests: list(
    value =>
      request(value) &&
      (granted(value) || neverGranted(value)) &&
      ((value as { end?: string }).end !== 'released' || released(value)),
  ),
  updates: list(
    shaped({
      fenced: flag,
      who: text,
      key: text,
      at: number,
      token: optional(token),
      read: number,
      found: number,
      accepted: flag,
    }),
  ),
  counters: each(shaped({ fenced: notNegative, unfenced: notNegative })),
  transfers: list(
    shaped({
      who: text,
      id: text,
      from: text,
      to: text,
      amount: number,
      asked: number,
      settled: optional(number),
      end: oneOf(undefined, 'applied', 'repeated', 'refused', 'unknown'),
      changes: optional(each(number)),
    }),
  ),
  calls: list(
    shaped({
      who: text,
      key: text,
      kind: oneOf('get', 'put', 'compareAndSet'),
      from: number,
      value: optional(text),
      expected: optional(text),
      until: optional(number),
      end: oneOf(undefined, 'done', 'conflict', 'refused', 'unknown'),
      version: optional(number),
    }),
  ),
  faults: list(
    lasting(
      'at',
      shaped({
        kind: text,
        client: optional(number),
        at: number,
        until: number,
        key: optional(text),
        recovery: optional(notNegative),
        others: optional(notNegative),
        interrupted: oneOf(undefined, true),
      }),
    ),
  ),
  stalls: list(lasting('from', shaped({ who: optional(text), from: number, until: number }))),
  accounts: optional(each(shaped({ balance: number, changes: number }))),
  escapes: list(text),
}

/**
 * Reads a history that `--history` wrote.
 * @throws InvalidArgumentError if the file can't be read, or does not contain a history.
 */
export function readHistory(path: string): History {
  try {
    const found: unknown = JSON.parse(readFileSync(path, 'utf8'))
    for (const [part, fits] of Object.entries(history))
      if (!shaped({ [part]: fits })(found)) throw new Error(`the field ${part} is missing or malformed`)
    return found as History
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgumentError(`${path} is no history of a run: ${reason}`, { cause: error })
  }
}
