import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { TransientMap } from '../../src/base/transient-map.js'
import { Random } from '../../packages/conformance/src/random.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void

describe('a map with short-lived entries', () => {
  test('is a map', () => {
    const random = new Random(3)
    const map = new TransientMap<number, string>()
    const plain = new Map<number, string>()
    for (let step = 0; step < 5000; step++) {
      const key = random.below(step % 1000 < 500 ? 30 : 600)
      if (random.below(2) === 0) {
        map.set(key, `${step}`)
        plain.set(key, `${step}`)
      } else expect(map.delete(key)).toBe(plain.delete(key))
      expect(map.size).toBe(plain.size)
      expect(map.has(key)).toBe(plain.has(key))
      expect(map.get(key)).toBe(plain.get(key))
    }
    expect([...map.keys()]).toEqual([...plain.keys()])
    expect([...map.values()]).toEqual([...plain.values()])
  })

  test('allows deletions while it is iterated', () => {
    const map = new TransientMap<number, number>()
    for (let key = 0; key < 2000; key++) map.set(key, key)
    const seen: number[] = []
    for (const key of map.keys()) {
      seen.push(key)
      map.delete(key)
    }
    expect(seen).toHaveLength(2000)
    expect(map.size).toBe(0)
  })

  test('lets deleted values be collected', () => {
    const map = new TransientMap<number, number[]>()
    collect()
    collect()
    const before = process.memoryUsage().heapUsed
    let most = 0
    for (let key = 0; key < 60_000; key++) {
      map.set(key, new Array<number>(100).fill(key))
      map.delete(key - 64)
      if (key % 500 === 0) {
        collect({ type: 'minor' })
        most = Math.max(most, process.memoryUsage().heapUsed - before)
      }
    }
    // The loop has added and removed 60,000 entries of 800 bytes.
    expect(most).toBeLessThan(8 * 2 ** 20)
  })
})
