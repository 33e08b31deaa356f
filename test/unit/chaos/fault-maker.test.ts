import { expect, test } from 'vitest'
import { FaultMaker } from '../../../apps/chaos/fault-maker.js'
import type { PlannedFault } from '../../../apps/chaos/plan.js'
import type { FromClient } from '../../../apps/chaos/protocol.js'
import { Recorder } from '../../../apps/chaos/recorder.js'
import { systemClock } from '../../../src/base/clock.js'

type World = ConstructorParameters<typeof FaultMaker>[0]

/** A restart of the server that is due as soon as it is planned. */
const RESTART: PlannedFault = {
  kind: 'kill server',
  client: 0,
  inside: false,
  pause: 0,
  length: 0,
  jump: 0,
  setsRight: false,
}

test('after a fault of the server the last client counts, from its first request, refused or not', async () => {
  const recorder = new Recorder()
  const goOn = (): void => {
    const now = systemClock.now()
    const heard: readonly [string, FromClient][] = [
      ['1.1', { say: 'asked', call: 1, key: 'a', at: now + 1 }],
      ['2.1', { say: 'asked', call: 1, key: 'a', at: now + 1 }],
      ['1.1', { say: 'granted', call: 1, at: now + 2 }],
      ['2.1', { say: 'left', call: 1, at: now + 3, end: 'refused' }],
      ['2.1', { say: 'asked', call: 2, key: 'b', at: now + 500 }],
      ['2.1', { say: 'granted', call: 2, at: now + 501 }],
    ]
    for (const [who, message] of heard) recorder.receive(who, message)
  }
  const maker = new FaultMaker({
    settings: { engine: 'redis://localhost', lease: 1000 },
    recorder,
    clients: [{ who: '1.1' }, { who: '2.1' }],
    limits: { 'kill server': 2000 },
    server: { kill: () => undefined, start: () => void setTimeout(goOn) },
    interrupted: new AbortController().signal,
  } as unknown as World)
  const fault = await maker.make(RESTART)
  expect(fault!.recovery).toBeCloseTo(500, 2)
})
