import { IndeterminateError, UnavailableError } from '../errors.js'
import { assert, rejection } from './assert.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { LAPSING, until } from './time.js'

const CUT = 'the line is cut'

/** P10: the error of a transaction says whether its function ran. It belongs to the checks of a task's end. */
export function transactionEnd(fixture: EngineFixture): void {
  const test = testOn(fixture)

  test('a committed transaction returns its result although its release fails', async boxes => {
    const [box, engine] = await boxes.meddled()
    engine.fail(['release'], new UnavailableError(CUT))
    const outcome = await box.store('s').transaction(['k'], transaction => {
      transaction.put('k', 1)
      return 'charged'
    })
    assert.has(outcome, { applied: true, result: 'charged' })
    engine.restore()
    assert.equal((await box.store('s').get('k'))!.value, 1)
  })

  test('a transaction that lost its locks has not ended', async boxes => {
    const [box, engine] = await boxes.meddled()
    const running = box.store('s').transaction(
      ['k'],
      async transaction => {
        transaction.put('k', 1)
        engine.fail(['renew'], new UnavailableError(CUT))
        await until('the locks are lost', () => transaction.signal.aborted)
      },
      // The function has to begin within it.
      { lease: 2300 },
    )
    assert.has(await rejection(running), { code: 'LOST', taskBegan: true, taskEnded: false })
    engine.restore()
    assert.equal(await box.store('s').get('k'), undefined)
  })

  for (const group of [undefined, { most: 2, within: 10 }]) {
    const kind = group ? 'a transaction of a group' : 'a transaction'
    test(`the error of ${kind} that could not commit says that its task began`, async boxes => {
      const [box, engine] = await boxes.meddled()
      const store = box.store('s', { group })
      const failing = (failure: Error): Promise<unknown> =>
        store.transaction(['k'], transaction => {
          transaction.put('k', 1)
          engine.fail(['commit'], failure)
        })
      for (const Failure of [UnavailableError, IndeterminateError]) {
        const failure = new Failure(CUT)
        assert.has(await rejection(failing(failure)), { code: failure.code, taskBegan: true })
        engine.restore()
      }
      const round = store.transaction(['k'], async transaction => {
        await box.store('s').put('k', 2)
        transaction.put('k', 1)
      })
      assert.has(await rejection(round), { code: 'CONFLICT', taskBegan: true })
    })
  }

  test('an error while keys are named again says that the task began', async boxes => {
    const box = await boxes.open()
    const store = box.store('s')
    let named = 0
    const running = store.transaction(
      async read => {
        await read('where')
        if (++named === 2) throw new UnavailableError(CUT)
        return ['k']
      },
      async transaction => {
        await store.put('where', 'elsewhere')
        transaction.put('k', 1)
      },
    )
    assert.has(await rejection(running), { code: 'UNAVAILABLE', taskBegan: true })
    assert.equal(named, 2)
  })

  test('a loss while the keys are named says that the task did not begin', async boxes => {
    const box = await boxes.open()
    const lose = (): Promise<string> =>
      box.mutex('inner').run(
        async grant => {
          await until('the grant is lost', () => grant.signal.aborted)
          return 'k'
        },
        { lease: LAPSING, renew: false },
      )
    const running = box.store('s').transaction(
      async () => [await lose()],
      () => 1,
    )
    const about = { code: 'LOST', taskBegan: false, taskEnded: false, result: undefined }
    assert.has(await rejection(running), about)
  })
}
