import { safeState } from '../../packages/conformance/src/safe-state.js'
import { weaknesses } from '../../packages/conformance/src/weaknesses.js'
import { hastyFile } from '../contract/file-fixture.js'
import { contractParts } from '../contract/suite.js'

contractParts(hastyFile, safeState, weaknesses)
