import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'signalbox'
import { grouped } from './check/grouped.js'
import { mayBeDone } from './check/money.js'
import { Transferring } from './client/transferring.js'
import { systemClock } from 'signalbox/engine'
import type { Recorder } from './recorder.js'

const WHO = 'harness'
const PAUSE = 100

/**
 * Delivers each transfer again, under its id, that no answer tells of, so that it is known to have been done.
 * @param limit bounds how long that may take: milliseconds.
 * @throws Error when the engine does not tell by then.
 */
export async function settle(recorder: Recorder, store: Store, lease: number, limit: number): Promise<void> {
  let calls = 0
  const hearer = {
    nextCall: () => ++calls,
    tell: (message: Parameters<Recorder['hear']>[1]) => recorder.hear(WHO, message),
  }
  const transferring = new Transferring(WHO, lease, store, hearer)
  const latest = systemClock.now() + limit
  for (;;) {
    const open = [...grouped(recorder.transfers, ({ id }) => id).values()].filter(mayBeDone)
    if (open.length === 0) return
    if (systemClock.now() > latest)
      throw new Error(`the engine does not tell what became of ${open[0]![0]!.id}`)
    for (const deliveries of open) {
      const { id, from, to, amount } = deliveries[0]!
      await transferring.deliver({ who: WHO, id, from, to, amount })
    }
    await sleep(PAUSE)
  }
}
