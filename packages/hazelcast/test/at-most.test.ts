import { expect, test } from 'vitest'
import { AtMost } from '../src/at-most.js'

/** Starts tasks under a limit. The test ends each one by its number. */
function tasks(limit: AtMost) {
  const begun: number[] = []
  const ends = new Map<number, (error?: Error) => void>()
  const run = (task: number): Promise<number> =>
    limit.run(
      () =>
        new Promise((resolve, reject) => {
          begun.push(task)
          ends.set(task, error => (error ? reject(error) : resolve(task)))
        }),
    )
  return { begun, run, end: (task: number, error?: Error) => ends.get(task)!(error) }
}

test('a limited number of tasks runs at a time, and the others follow in order', async () => {
  const { begun, run, end } = tasks(new AtMost(2))
  const all = [1, 2, 3, 4].map(run)
  expect(begun).toEqual([1, 2])
  end(2)
  await all[1]
  expect(begun).toEqual([1, 2, 3])
  end(1)
  end(3)
  await Promise.all([all[0], all[2]])
  expect(begun).toEqual([1, 2, 3, 4])
  end(4)
  expect(await Promise.all(all)).toEqual([1, 2, 3, 4])
})
