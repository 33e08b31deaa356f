import { describe } from 'vitest'
import { file, hastyFile } from './file-fixture.js'
import { safeState } from './safe-state.js'
import { contractSuite } from './suite.js'
import { weaknesses } from './weaknesses.js'

contractSuite(file)

describe(hastyFile.name, () => {
  safeState(hastyFile)
  weaknesses(hastyFile)
})
