import { safeState } from '../../src/conformance/safe-state.js'
import { weaknesses } from '../../src/conformance/weaknesses.js'
import { hastyFile } from '../contract/file-fixture.js'
import { contractParts } from '../contract/suite.js'

contractParts(hastyFile, safeState, weaknesses)
