import { distantMemory } from '../contract/memory-fixture.js'
import { contractSuite } from '../contract/suite.js'

contractSuite(distantMemory)
