/** Uses a box and prints `done`. The process must then end by itself. */
import type { Box, Slot } from 'signalbox'
import type { Opener } from './fixture.js'

const [opener, url, scene] = process.argv.slice(2)
const { open } = (await import(opener!)) as Opener
const box = await open(url!)

/** Calls that last as long as their box is open. They fail on engines without values or limits. */
const waits: readonly ((other: Box) => Promise<unknown>)[] = [
  async other => other.mutex('a').acquire(),
  other => {
    const permit = async (): Promise<unknown> => other.limiter('l', { limit: 1, per: '1h' }).acquire()
    const watches = [endless(other.store('s').watch('k')), endless(other.election('e').observe())]
    return Promise.allSettled([...watches, permit(), permit()])
  },
]

async function endless(changes: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of changes);
}

/** Prints whether timers still keep the process alive, half a second from now. */
function reportTimers(): void {
  const report = (): void => {
    const timers = process.getActiveResourcesInfo().filter(type => type === 'Timeout')
    if (timers.length > 0) console.log(`${timers.length} timers left`)
  }
  setTimeout(report, 500).unref()
}

switch (scene) {
  case 'idle':
    break
  case 'holding':
    await box.mutex('a', 'b').acquire()
    await box.semaphore('c', { max: 2 }).acquire({ lease: '1h' })
    break
  case 'leading':
    await box.election('d').campaign()
    break
  case 'given-up': {
    const other = await open(url!)
    const held = await box.mutex('a').acquire()
    for (const waiting of [box, other]) {
      await waiting
        .mutex('a')
        .acquire({ wait: 20 })
        .catch(() => undefined)
      const controller = new AbortController()
      const asked = waiting.mutex('a').acquire({ wait: '1h', signal: controller.signal })
      setTimeout(() => controller.abort(), 20)
      await asked.catch(() => undefined)
    }
    await held.release()
    break
  }
  case 'watching': {
    const watch = box.store('s').watch('k')
    await watch.next()
    break
  }
  case 'awaiting-change': {
    const watch = box.store('s').watch('k')
    await watch.next()
    void watch.next().then(({ value }) => console.log(value!.value))
    // This timer does not keep the process alive, so the change comes only if the watch does.
    setTimeout(() => void box.store('s').put('k', 'changed'), 200).unref()
    break
  }
  case 'closed': {
    const held = await box.mutex('a').acquire()
    const waiting = box
      .mutex('a')
      .acquire({ wait: '1h' })
      .catch(() => undefined)
    await box.close()
    await waiting
    await held.release().catch(() => undefined)
    break
  }
  case 'closed-early': {
    const held = await box.mutex('a').acquire()
    const closed = async (
      begin: (other: Box) => Promise<unknown>,
      after: number | undefined,
    ): Promise<void> => {
      const other = await open(url!)
      const over = begin(other).catch(() => undefined)
      if (after !== undefined) await new Promise(resolve => setTimeout(resolve, after))
      await other.close()
      await over
    }
    await Promise.all([undefined, 0, 1, 5, 20].flatMap(after => waits.map(begin => closed(begin, after))))
    await held.release()
    await box.close()
    break
  }
  case 'closed-busy': {
    // More calls than any engine has connections.
    const calls = Array.from({ length: 40 }, async (_, index) => {
      for await (const _report of box.inspect(`k${index}`));
      await box.mutex(`k${index}`).run(() => undefined)
      for await (const _limiter of box.limiters(`k${index}`));
    })
    await Promise.race([new Promise(resolve => setTimeout(resolve, 1)), ...calls])
    const began = performance.now()
    await box.close()
    await Promise.allSettled(calls)
    const took = performance.now() - began
    if (took > 3000) console.log(`the calls ended after ${Math.round(took)} ms`)
    break
  }
  case 'drained': {
    const schedule = box.schedule('s', { every: 300 }, () => undefined)
    let slot: Slot | undefined
    // It has run, and waits for its next slot.
    while (slot === undefined || slot.at.getTime() === schedule.next?.at.getTime()) {
      slot ??= schedule.next
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    await new Promise(resolve => setTimeout(resolve, 100))
    await box.close({ drain: '1m' })
    reportTimers()
    break
  }
  case 'transactions': {
    const store = box.store('s', { group: { maxSize: 8, maxTime: 20 } })
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store.transaction(['k', `k${index}`], transaction => transaction.put('k', index), {
          id: `${index}`,
          wait: '1h',
        }),
      ),
    )
    break
  }
  case 'waiting-with-signal': {
    await box.mutex('a').acquire()
    // The timer of this signal does not keep the process alive.
    const waiting = box.mutex('a').acquire({ signal: AbortSignal.timeout(200) })
    waiting.catch((error: unknown) => console.log((error as { code?: string }).code))
    break
  }
  case 'waiting': {
    const other = await open(url!)
    await box.mutex('a').acquire({ lease: 1000, renew: false })
    void other
      .mutex('a')
      .acquire()
      .then(() => console.log('granted'))
    break
  }
  default:
    throw new Error(`there is no scene ${String(scene)}`)
}
console.log('done')
