import type { TransactionAction, WriteAction } from './action.js'
import type { Try } from './observed-store.js'
import type { SimulatedProcess } from './process.js'
import type { World } from './world.js'

const EXPECTED = new Set([
  'BUSY',
  'TIMED_OUT',
  'ABORTED',
  'UNAVAILABLE',
  'INDETERMINATE',
  'LOST',
  'CLOSED',
  'CONFLICT',
])
/** Maximum number of attempts of a change whose outcome is unknown. */
const TRIES = 10
/** Pause before the next attempt, in milliseconds. */
const PAUSE = 50

/** The error that the function of a transaction throws on purpose. */
class Refusal extends Error {}

/** Makes a change in a transaction. Tries it with the same ID until its outcome is known. */
export async function transact(
  world: World,
  process: SimulatedProcess,
  action: TransactionAction,
  caller: number,
): Promise<void> {
  const change = action.id === undefined ? undefined : `${action.id}-${action.twins ? 0 : caller}`
  for (let times = 0; times < TRIES; times++) {
    const told = await tryOnce(world, process, action, change)
    if (told !== 'unknown' || change === undefined || !process.open) return
    await process.sleep(PAUSE)
  }
}

async function tryOnce(
  world: World,
  process: SimulatedProcess,
  action: TransactionAction,
  change: string | undefined,
): Promise<Try['told']> {
  const { history, timeline } = world
  const { store, keys, variant, wait, lease, pause } = action
  const mark = `${change ?? 'm'}#${world.nextMark()}`
  const named = variant === 'deleting' && keys.length > 1 ? keys.slice(0, -1) : keys
  const attempt = world.store.tries(mark, change && `${store}/${change}`, named.length)
  let abortedIn: number | undefined
  const controller = action.abortAfter === undefined ? undefined : new AbortController()
  if (controller) {
    process.exactly(action.abortAfter!, () => {
      abortedIn = timeline.steps
      controller.abort('given up')
    })
  }
  const settle = (told: Try['told']): Try['told'] => {
    attempt.told = told
    history.note(process.name, `${mark}: ${told}`)
    return told
  }
  try {
    const outcome = await process.stores.get(store)!.transaction(
      variant === 'moving' ? async read => moved(keys, await read<string[]>(keys[0]!)) : keys,
      async transaction => {
        if (abortedIn !== undefined && abortedIn < timeline.steps)
          history.violate('P8', `${mark} begins after its caller has aborted`)
        if (pause > 0) await process.sleep(pause)
        const own = variant === 'moving' ? moved(keys, transaction.get<string[]>(keys[0]!)) : named
        for (const key of own) transaction.put(key, [...(transaction.get<string[]>(key) ?? []), mark])
        if (named !== keys) transaction.delete(keys.at(-1)!)
        if (variant === 'failing') throw new Refusal('on purpose')
      },
      {
        lease,
        ...(change === undefined ? {} : { id: change }),
        ...(wait === undefined ? {} : { wait }),
        ...(controller ? { signal: controller.signal } : {}),
      },
    )
    // If an operator released the locks, another process may have made the change before this process knew its outcome.
    if (outcome.applied && world.table.grants.get(Number(outcome.token / 1024n))?.overridden)
      return settle('unknown')
    return settle(outcome.applied ? 'applied' : 'repeated')
  } catch (error) {
    if (error instanceof Refusal) return settle('refused')
    const { code } = error as { code?: string }
    if (code === undefined || !EXPECTED.has(code))
      history.violate('P10', `a caller of a transaction gets ${String(error)}`)
    history.note(process.name, `${mark} fails: ${String(code)}`)
    return settle(code === 'INDETERMINATE' ? 'unknown' : 'refused')
  }
}

/** Returns the keys of a transaction whose last key depends on the value of the first. */
function moved(keys: readonly string[], list: readonly string[] | undefined): string[] {
  const others = ['a', 'b', 'c', 'd'].filter(key => !keys.includes(key))
  const found = others[(list?.length ?? 0) % others.length]!
  return [...keys.slice(0, Math.max(1, keys.length - 1)), ...(keys.length > 1 ? [found] : [])]
}

/** A compare-and-set that bypasses the lock: adds a mark if no other write came between. */
export async function write(world: World, process: SimulatedProcess, action: WriteAction): Promise<void> {
  const { history } = world
  const store = process.stores.get(action.store)!
  const mark = `w#${world.nextMark()}`
  const attempt = world.store.tries(mark, undefined, 1)
  try {
    const entry = await store.get<string[]>(action.key)
    await process.sleep(action.pause)
    const list = [...(entry?.value ?? []), mark]
    const version = await store.compareAndSet(action.key, entry?.version ?? 0, list)
    attempt.told = version === undefined ? 'refused' : 'applied'
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === undefined || !EXPECTED.has(code)) history.violate('P10', `a writer gets ${String(error)}`)
    attempt.told = code === 'INDETERMINATE' ? 'unknown' : 'refused'
  }
  history.note(process.name, `${mark}: ${attempt.told}`)
}
