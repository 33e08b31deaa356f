import { describe, expect, test } from 'vitest'
import { WriteQueue } from '../../../src/base/write-queue.js'
import { InvalidArgumentError, UnavailableError } from '../../../src/base/errors.js'

/** Creates a write that the test ends. */
function write() {
  let end: (result: Promise<string>) => void = () => undefined
  const result = new Promise<string>(resolve => (end = resolve))
  let isBegun = false
  return {
    run: () => {
      isBegun = true
      return result
    },
    isBegun: () => isBegun,
    done: (text: string) => end(Promise.resolve(text)),
    fail: (error: Error) => end(Promise.reject(error)),
  }
}

const settle = () => new Promise(setImmediate)

describe('writes of one key', () => {
  test('run one after another, those of another key at the same time', async () => {
    const queue = new WriteQueue('engine')
    const [one, two, other] = [write(), write(), write()]
    const first = queue.run('key', one.run)
    const second = queue.run('key', two.run)
    void queue.run('other', other.run)
    await settle()
    expect([one, two, other].map(({ isBegun }) => isBegun())).toEqual([true, false, true])
    one.done('first')
    expect(await first).toBe('first')
    await settle()
    expect(two.isBegun()).toBe(true)
    two.done('second')
    expect(await second).toBe('second')
  })

  test('a refused write does not block the others', async () => {
    const queue = new WriteQueue('engine')
    const [one, two] = [write(), write()]
    const first = queue.run('key', one.run)
    const second = queue.run('key', two.run)
    one.fail(new InvalidArgumentError('too long'))
    await expect(first).rejects.toThrow('too long')
    two.done('second')
    expect(await second).toBe('second')
  })

  test('an outage ends all waiting writes, and the next write tries again', async () => {
    const queue = new WriteQueue('engine')
    const [one, two, three, late] = [write(), write(), write(), write()]
    const running = [one, two, three].map(each => queue.run('key', each.run))
    const outage = new UnavailableError('no server is connected')
    const settled = Promise.allSettled(running)
    one.fail(outage)
    const [first, ...rest] = await settled
    expect(first).toMatchObject({ reason: outage })
    for (const one of rest)
      expect(one).toMatchObject({
        reason: { code: 'UNAVAILABLE', key: 'key', engine: 'engine', cause: outage },
      })
    expect([two, three].some(({ isBegun }) => isBegun())).toBe(false)
    late.done('late')
    expect(await queue.run('key', late.run)).toBe('late')
  })
})
