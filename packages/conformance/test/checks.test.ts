import { AssertionError } from 'node:assert'
import { expect, test } from 'vitest'
import * as checks from '../src/checks.js'
import { conformance } from '../src/index.js'

const never = new Promise(() => undefined)

test('a check that never ends is rejected in time, its clean-up runs, and no timer stays', async () => {
  const done: string[] = []
  const [inBody, atStart, atEnd, quick] = checks.checksOf(() => {
    const after = (): void => void done.push('after')
    checks.testsOn(() => ({ start: () => undefined, end: after }))('waits in its body', () => never)
    checks.testsOn(() => ({ start: () => never, end: after }))('waits before', () => void done.push('a'))
    checks.testsOn(() => ({ start: () => undefined, end: () => never }))(
      'waits after',
      () => void done.push('b'),
    )
    checks.testsOn(() => ({ start: () => undefined, end: after }))('is quick', () => void done.push('c'))
  })
  const late = new AssertionError({ message: 'still waiting after 0.02 s' })
  await expect(inBody!.run(20)).rejects.toThrow(late)
  await expect(atStart!.run(20)).rejects.toThrow(late)
  expect(done).toEqual(['after', 'after'])
  await expect(atEnd!.run(20)).rejects.toThrow(late)
  expect(done).toEqual(['after', 'after', 'b'])
  const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const running = [quick!.run(), quick!.run(Infinity)]
  await Promise.all(running)
  expect(done.slice(3)).toEqual(['c', 'c', 'after', 'after'])
  expect(timers()).toBeLessThanOrEqual(before)
})

test.each(
  [undefined, null, 5, 'x', {}, [], { name: 'a', guarantees: {}, start: () => undefined }].map(fixture => ({
    fixture,
  })),
)('a fixture $fixture is refused', ({ fixture }) => {
  expect(() => conformance(fixture as never)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('fixture') as string,
    }),
  )
})
