import { describe, expect } from 'vitest'
import { rejection } from '../../packages/conformance/src/assert.js'
import { LAPSING, until } from '../../packages/conformance/src/time.js'
import { IndeterminateError, UnavailableError } from '../../src/index.js'
import { test } from '../support/memory-boxes.js'

const CUT = 'the line is cut'

describe.concurrent('the error of a transaction says whether its function ran', () => {
  test('a committed transaction returns its result although its release fails', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    engine.fail(['release'], new UnavailableError(CUT))
    const outcome = await box.store('s').transaction(['k'], transaction => {
      transaction.put('k', 1)
      return 'charged'
    })
    expect(outcome).toMatchObject({ applied: true, result: 'charged' })
    engine.restore()
    expect((await box.store('s').get('k'))!.value).toBe(1)
  })

  test('a transaction that lost its locks has not ended', async ({ boxes }) => {
    const [box, engine] = await boxes.withFaults()
    const running = box.store('s').transaction(
      ['k'],
      async transaction => {
        transaction.put('k', 1)
        engine.fail(['renew'], new UnavailableError(CUT))
        await until('the locks are lost', () => transaction.signal.aborted)
      },
      // Long enough for the function to begin within it.
      { lease: 2300 },
    )
    expect(await rejection(running)).toMatchObject({ code: 'LOST', taskBegan: true, taskEnded: false })
    engine.restore()
    expect(await box.store('s').get('k')).toBe(undefined)
  })

  for (const group of [undefined, { maxSize: 2, maxTime: 10 }]) {
    const kind = group ? 'a transaction of a group' : 'a transaction'
    test(`the error of ${kind} that could not commit says that its task began`, async ({ boxes }) => {
      const [box, engine] = await boxes.withFaults()
      const store = box.store('s', { group })
      const failing = (failure: Error): Promise<unknown> =>
        store.transaction(['k'], transaction => {
          transaction.put('k', 1)
          engine.fail(['commit'], failure)
        })
      for (const Failure of [UnavailableError, IndeterminateError]) {
        const failure = new Failure(CUT)
        expect(await rejection(failing(failure))).toMatchObject({ code: failure.code, taskBegan: true })
        engine.restore()
      }
      const round = store.transaction(['k'], async transaction => {
        await box.store('s').put('k', 2)
        transaction.put('k', 1)
      })
      expect(await rejection(round)).toMatchObject({ code: 'CONFLICT', taskBegan: true })
    })
  }

  test('an error while keys are named again says that the task began', async ({ boxes }) => {
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
    expect(await rejection(running)).toMatchObject({ code: 'UNAVAILABLE', taskBegan: true })
    expect(named).toBe(2)
  })

  test('a loss while the keys are named says that the task did not begin', async ({ boxes }) => {
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
    expect(await rejection(running)).toMatchObject(about)
  })
})
