import { expect, test } from 'vitest'
import { mutants } from '../planted/mutants.js'
import { limitMutants } from '../planted/limit-mutants.js'
import { markedMutants } from '../planted/mutated-copy.js'
import { recordMutants } from '../planted/record-mutants.js'
import { setMutants } from '../planted/set-mutants.js'
import { testedMutants } from '../planted/tested-mutants.js'

test('each comment in the sources that marks a mutant belongs to one, and each mutant is marked once', () => {
  const all = [...mutants, ...recordMutants, ...setMutants, ...limitMutants, ...testedMutants]
  const ids = all.map(({ id }) => id)
  expect(markedMutants().sort()).toEqual(ids.sort())
})
