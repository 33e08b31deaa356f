import { expect, onTestFinished, test } from 'vitest'
import { open } from '../../src/index.js'

test('many parts of a task may listen to the signal of its grant', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  await using box = await open('memory:')
  await box.mutex('key').run(async ({ signal }) => {
    for (let part = 0; part < 20; part++) signal.addEventListener('abort', () => undefined)
    await new Promise(setImmediate)
  })
  expect(warnings).toEqual([])
})
