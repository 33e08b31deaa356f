import { test as withoutBoxes } from 'vitest'
import { Boxes } from '../../packages/conformance/src/boxes.js'
import { distantMemory } from '../contract/memory-fixture.js'

/** Adds a test that gets boxes on a memory of its own, whose answers take a moment. They are closed after it. */
export const test = withoutBoxes.extend<{ boxes: Boxes }>({
  // The runner reads from the pattern which fixtures this one needs.
  // eslint-disable-next-line no-empty-pattern
  boxes: async ({}, use) => {
    const boxes = new Boxes(distantMemory)
    await boxes.start()
    await use(boxes)
    await boxes.end()
  },
})
