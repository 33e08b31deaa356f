import { memory } from './memory-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(memory)
