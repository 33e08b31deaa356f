import { expect, test } from 'vitest'
import { firstKeys } from '../../../../src/engine/kit/first-keys.js'
import { Random } from '../../../../packages/conformance/src/random.js'

test('the first keys of any order are those of the sorted list', () => {
  const random = new Random(7)
  for (let round = 0; round < 200; round++) {
    const keys = Array.from(
      { length: random.below(60) },
      () => `${'ab'[random.below(2)]!}${random.below(40)}`,
    )
    const list = {
      prefix: ['', 'a', 'a1', 'c'][random.below(4)]!,
      after: ['', 'a', 'a2', 'b0', 'b'][random.below(5)]!,
      limit: 1 + random.below(8),
    }
    const expected = [...new Set(keys)]
      .sort()
      .filter(key => key.startsWith(list.prefix) && key > list.after)
      .slice(0, list.limit)
    expect(firstKeys(keys, list), JSON.stringify({ keys, list })).toEqual(expected)
  }
})
