import { distantMemory } from './memory-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(distantMemory)
