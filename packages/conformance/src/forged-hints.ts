import { CLAIM_WINDOW } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { FaultInjectingEngine, Hint } from './fault-injecting-engine.js'
import type { EngineFixture } from './fixture.js'
import { pause, queued } from './time.js'

/** Number of rounds in which every hint is forged many times. */
const ROUNDS = 40
/** Number of forged hints of each kind in a round. */
const FLOOD = 50
const KINDS: readonly Hint['type'][] = ['wake', 'lost', 'contended', 'reserved', 'changed', 'missed']
/** Maximum number of operations of one kind that hints cause for each request, at once and in a second. */
const AT_ONCE = 16
const IN_A_SECOND = 32

/** P1, P4: a forged message only makes a box ask the engine. */
export function forgedHints(fixture: EngineFixture): void {
  describe('P1 forged hints', () => {
    const test = testOn(fixture)

    test('end no grant, grant nothing, keep the order and cause a bounded number of operations', async boxes => {
      const [holder, holding] = await boxes.withFaults()
      const [first, waiting] = await boxes.withFaults()
      const second = await boxes.open()
      const grants = [
        await holder.mutex('key').acquire(),
        await holder.mutex('fixed').acquire({ renew: false }),
      ]
      const order: string[] = []
      const asked = first.mutex('key').acquire()
      const firstDone = asked.then(async grant => {
        order.push('first')
        await grant.release()
      })
      await queued(second, 'key', 1)
      const secondDone = second.mutex('key').run(() => void order.push('second'))
      await queued(holder, 'key', 2)
      const before = [holding, waiting].map(engine => engine.operations.length)
      const begun = performance.now()
      for (let round = 0; round < ROUNDS; round++) {
        for (const engine of [holding, waiting]) forgeAll(engine)
        await pause(5)
      }
      const seconds = (performance.now() - begun + CLAIM_WINDOW) / 1000
      for (const grant of grants) grant.assertHeld()
      assert.equal(order.length, 0)
      for (const [place, engine] of [holding, waiting].entries()) {
        const caused = engine.operations.slice(before[place])
        for (const type of [
          'renew',
          'checkIn',
          'alive',
          'sweepExpired',
          'cancel',
          'enqueue',
          'release',
        ] as const) {
          const count = caused.filter(operation => operation.type === type).length
          assert.atMost(count, 2 * (AT_ONCE + IN_A_SECOND * seconds))
        }
      }
      for (const grant of grants) await grant.release()
      await Promise.all([firstDone, secondDone])
      assert.equal(order.join(), 'first,second')
    })
  })
}

/** Forges every hint about every request of a box, as a client that knows their IDs could. */
function forgeAll(engine: FaultInjectingEngine): void {
  const ids = new Set(
    engine.operations.flatMap(operation => ('request' in operation ? [operation.request.id] : [])),
  )
  for (let sent = 0; sent < FLOOD; sent++)
    for (const type of KINDS)
      for (const id of type === 'wake' || type === 'lost' || type === 'contended' ? ids : ['key'])
        engine.forge({ type, id })
}
