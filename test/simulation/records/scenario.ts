import type { RecordTransactions } from '../../../src/store/records/record-transactions.js'
import { parseRecord } from '../../../src/store/records/record-text.js'
import type { Records } from '../../../src/store/records/records.js'
import type { Explored } from './explore.js'
import { canHaveHappened, sameValues, type Action, type State, type Told } from './model.js'
import { World, type Interned, type Task } from './world.js'

/** Concurrent actions on a store with initial values. */
export interface Scenario {
  readonly name: string
  readonly before: Readonly<Record<string, number>>
  readonly actions: readonly Action[]
}

/** A scenario, with the faults that may occur in it. */
export interface Scope {
  readonly scenario: Scenario
  /** Maximum number of faults in one run. */
  readonly faults: number
  /** The kinds of faults: crashes of processes only, or lost connections, too. */
  readonly kinds: 'crashes' | 'all'
}

/** The code under test: the sources, or a copy with a mistake in it. */
export type RecordTransactionsClass = typeof RecordTransactions

/** The report of an action at its end. */
type Outcome = Pick<Told, 'outcome' | 'read'>

/** The time of the clock, which stands still so that equal states are equal. */
const NOW = 1_000_000
const RETENTION = 60_000
const KEYS = ['a', 'b', 'c']
/** Greater than the token of every action. */
const LAST_TOKEN = 1000n

const NOT_COMMITTED: Outcome = { outcome: 'refused', read: undefined }
const UNKNOWN: Outcome = { outcome: 'unknown', read: undefined }

/** Returns a scenario to explore in every order, with some faults. */
export function explored({ scenario, faults, kinds }: Scope, LedgerOf: RecordTransactionsClass): Explored {
  const { before, actions } = scenario
  const transactions = (records: Records, attempts: string): RecordTransactions => {
    let count = 0
    return new LedgerOf(records, { now: () => NOW, newAttempt: () => `${attempts}.${++count}` })
  }
  const tasks = actions.map(
    (action): Task =>
      (records, process) =>
        perform(action, transactions(records, process)),
  )
  const begin: State = { values: new Map(Object.entries(before)), ids: new Set() }
  let texts: ReadonlyMap<string, string> | undefined
  return {
    faults,
    kinds,
    start(names: Interned): World {
      texts ??= textsOf(before)
      return new World(texts, tasks, names)
    },
    async judge(world: World): Promise<string | undefined> {
      const told: Told[] = []
      for (const [index, action] of actions.entries()) {
        const ending = world.endings[index]
        if (ending?.state === 'failed') return `p${index} failed with ${String(ending.error)}`
        if (!ending && !world.crashed.has(index)) return `p${index} never ends`
        told.push({ action, ...(ending ? (ending.result as Outcome) : UNKNOWN) })
      }
      const all = new Map(world.texts)
      const records = instantRecords(all)
      const seen = await transactions(records, 'reader').read({ keys: KEYS, ids: [] })
      const reader = valuesOf(seen.values.map(({ value }) => value))
      const reading = await transactions(records, 'last').hold({ keys: KEYS, ids: [] }, LAST_TOKEN)
      if (reading === 'lost') return 'a token was made up'
      for (const [key, text] of all) if (text.includes('"stamp"')) return `a stamp stays at ${key}: ${text}`
      const values = valuesOf(reading.outcome.values.map(({ value }) => value))
      if (!sameValues(reader, values)) return `a reader saw ${show(reader)}, a holder ${show(values)}`
      const ids = [...all].flatMap(([key, text]) =>
        [...parseRecord(key, text).ids.keys()].map(id => `${key}:${id}`),
      )
      if (canHaveHappened(begin, { values, ids: new Set(ids) }, told)) return undefined
      const outcomes = told.map(({ outcome, read }) => `${outcome} ${read ? show(read) : ''}`)
      return `no order gives ${show(values)} ids ${ids.join()}: ${outcomes.join('; ')}`
    },
  }
}

/** Performs an action as the store does, without the locks. */
async function perform(action: Action, transactions: RecordTransactions): Promise<Outcome> {
  const { keys, token, id, work } = action
  try {
    if (token === 0) return await write(action, transactions)
    const ids = id === undefined ? [] : [{ key: keys[0]!, id }]
    const reading = await transactions.hold({ keys, ids }, BigInt(token))
    if (reading === 'lost') return NOT_COMMITTED
    if (reading.outcome.seen[0]) return { outcome: 'repeated', read: undefined }
    const read = valuesOf(
      reading.outcome.values.map(({ value }) => value),
      keys,
    )
    const writes = Object.entries(work(read)).map(([key, value]) => ({ key, value: textOf(value) }))
    const expect = keys.map((key, index) => ({ key, version: reading.outcome.values[index]!.version }))
    const commit = { expect, writes, record: ids, retention: RETENTION }
    const { state } = await transactions.commit(reading, commit, BigInt(token), () => undefined)
    return state === 'committed' ? { outcome: 'committed', read } : NOT_COMMITTED
  } catch (error) {
    return failed(error)
  }
}

/** Writes without locks, which needs no read. */
async function write({ work }: Action, transactions: RecordTransactions): Promise<Outcome> {
  for (const [key, value] of Object.entries(work(new Map())))
    await transactions.write({ key, value: textOf(value) }, undefined, RETENTION)
  return { outcome: 'committed', read: undefined }
}

/** Returns the outcome of a failed action. Compares error codes, because a copy of the sources has its own classes. */
function failed(error: unknown): Outcome {
  const { code } = error as { code?: string }
  if (code === 'UNAVAILABLE') return NOT_COMMITTED
  if (code === 'INDETERMINATE') return UNKNOWN
  throw error
}

function instantRecords(texts: Map<string, string>): Records<string> {
  return {
    async get(key) {
      const text = texts.get(key)
      return text === undefined ? undefined : { text, version: text }
    },
    async compareAndSet(key, version, text) {
      if (texts.get(key) !== version) return undefined
      texts.set(key, text)
      return text
    },
  }
}

function textsOf(values: Readonly<Record<string, number>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(values).map(([key, value]) => [key, JSON.stringify({ value, version: 1 })]))
}

function textOf(value: number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}

function valuesOf(
  values: readonly (string | undefined)[],
  keys = KEYS as readonly string[],
): Map<string, number> {
  const pairs = keys.map((key, index) => [key, values[index]] as const)
  return new Map(pairs.flatMap(([key, value]) => (value === undefined ? [] : [[key, Number(value)]])))
}

function show(values: ReadonlyMap<string, number>): string {
  return `{${[...values].map(([key, value]) => `${key}: ${value}`).join(', ')}}`
}
