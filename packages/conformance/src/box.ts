import { describe } from './checks.js'
import { assert } from './assert.js'
import { ClosedError, UnavailableError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { inspecting } from './inspect.js'
import { closing } from './close.js'
import { stealing } from './stealing.js'
import { locks, nothingHeld, pause, until } from './time.js'

/** A box: guarantees, session, ping, state, inspection, stealing and close. */
export function box(fixture: EngineFixture): void {
  describe('a box', () => {
    const test = testOn(fixture)

    test("it shows its engine's guarantees", async boxes => {
      const one = await boxes.open()
      assert.deepEqual(one.guarantees, fixture.guarantees)
    })

    test('each has a session of its own', async boxes => {
      const all = await boxes.several(4)
      assert.equal(new Set(all.map(({ session }) => session)).size, 4)
    })

    test('ping is answered, leaves nothing behind, and is refused once the box is closed', async boxes => {
      const [one, other] = await boxes.pair()
      assert.atLeast(await one.ping(), 0)
      await Promise.all([one.ping(), one.ping(), other.ping()])
      assert.equal(one.state.status, 'ready')
      assert.deepEqual(await locks(other), [])
      await one.close()
      assert.has(one.state, { status: 'closed', reason: { code: 'CLOSED' } })
      await assert.rejects(one.ping(), ClosedError)
    })

    test('a ping ends when its lock is released, or with the reason why it is not', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const outage = new UnavailableError('an outage')
      engine.intercept = ({ type }, execute) => (type === 'release' ? pause(100).then(execute) : execute())
      await box.ping()
      assert.deepEqual(await locks(box), [])
      engine.fail(['release'], outage)
      await assert.rejects(box.ping(), UnavailableError)
      engine.restore()
      await nothingHeld(box)
    })

    test('its state shows an outage, and its end', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const outage = new UnavailableError('an outage')
      engine.intercept = () => Promise.reject(outage)
      await assert.rejects(box.ping(), UnavailableError)
      await assert.rejects(box.mutex('key').acquire(), UnavailableError)
      assert.has(box.state, { status: 'reconnecting', reason: outage })
      engine.restore()
      // The box finds out by itself, without a further call.
      await until('the box is ready', () => box.state.status === 'ready')
      assert.equal(box.state.reason, undefined)
      await box.ping()
    })

    inspecting(fixture)
    stealing(fixture)
    closing(fixture)
  })
}
