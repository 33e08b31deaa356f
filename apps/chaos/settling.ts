import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'signalbox'
import { groupedBy } from 'signalbox/engine'
import { mayBeDone } from './check/money.js'
import { Transferring } from './client/transferring.js'
import { systemClock } from 'signalbox/engine'
import type { Recorder } from './recorder.js'

const WHO = 'harness'
const PAUSE = 100

/**
 * Delivers each transfer with an unknown outcome again, under its ID, until an answer confirms it.
 * @param limit maximum time, in milliseconds.
 * @throws Error if the engine does not answer by then.
 */
export async function settle(recorder: Recorder, store: Store, lease: number, limit: number): Promise<void> {
  let calls = 0
  const reporter = {
    nextCall: () => ++calls,
    report: (message: Parameters<Recorder['receive']>[1]) => recorder.receive(WHO, message),
  }
  const transferring = new Transferring(WHO, lease, store, reporter)
  const latest = systemClock.now() + limit
  for (;;) {
    const open = [...groupedBy(recorder.transfers, ({ id }) => id).values()].filter(mayBeDone)
    if (open.length === 0) return
    if (systemClock.now() > latest)
      throw new Error(`the engine does not show the outcome of ${open[0]![0]!.id}`)
    for (const deliveries of open) {
      const { id, from, to, amount } = deliveries[0]!
      await transferring.deliver({ who: WHO, id, from, to, amount })
    }
    await sleep(PAUSE)
  }
}
