import { expect, test } from 'vitest'
import { open } from '../../../src/index.js'

const OPTIONS = [
  { limit: 10, per: '1m' },
  { limit: 10, per: '1m', concurrency: 2 },
] as const

test.each(OPTIONS)('the longest name and key are the same for a limiter with %j', async options => {
  await using box = await open('memory:')
  const key = (length: number): string => 'k'.repeat(length)
  const limiter = box.limiter('api', options)
  const permit = await limiter.key(key(1010)).acquire()
  permit.release()
  for (const length of [1011, 1024]) {
    expect(() => limiter.key(key(length))).toThrow(
      `key must have at most 1010 characters here, not ${length}`,
    )
  }
  const named = await box.limiter(key(1011), options).acquire()
  named.release()
  for (const length of [1012, 1024]) {
    expect(() => box.limiter(key(length), options)).toThrow('name must have at most 1011 characters here')
  }
})
