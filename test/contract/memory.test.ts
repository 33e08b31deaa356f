import { expect, test } from 'vitest'
import { rising } from '../../packages/conformance/src/section.js'
import { open } from '../../src/index.js'
import { memory } from './memory-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(memory)

test('tokens rise over more acquisitions, one after another, than a grant has turns', async () => {
  await using box = await open('memory:turns')
  const tokens: bigint[] = []
  for (let round = 0; round < 1100; round++)
    await box.mutex('key').run(grant => void tokens.push(grant.token))
  expect(tokens).toHaveLength(1100)
  expect(rising(tokens)).toBe(true)
})
