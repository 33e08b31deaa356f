import { expect, test } from 'vitest'
import { open } from '../../../src/index.js'
import { memoryGuarantees as guarantees } from '../../../src/engines/memory/memory-engine.js'

const something = (): undefined => undefined
const whole = { name: 'own:', guarantees, join: something, submit: something, leave: something }

const unfit: readonly unknown[] = [
  undefined,
  null,
  5,
  'x',
  {},
  [],
  something,
  ...Object.keys(whole).map(part => ({ ...whole, [part]: undefined })),
]

test.each(unfit.map(engine => ({ engine })))('engine $engine is refused', async ({ engine }) => {
  await expect(open({ engine } as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/^engine must be an object with name, .*, not /) as string,
  })
})

test('an engine with all required members is accepted', async () => {
  await using box = await open({ engine: whole as never })
  expect(box.guarantees).toBe(guarantees)
})

test('a source that names two engines is rejected', async () => {
  await expect(open({ redis: {}, postgres: {} } as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'the source to open must have either redis or postgres, not both',
  })
  await expect(open({ engine: whole, postgres: {} } as never)).rejects.toThrow('unknown option "postgres"')
})
