import { file, hastyFile } from './file-fixture.js'
import { safeState } from '../../src/conformance/safe-state.js'
import { contractParts, contractSuite } from './suite.js'
import { weaknesses } from '../../src/conformance/weaknesses.js'

contractSuite(file)

contractParts(hastyFile, safeState, weaknesses)
