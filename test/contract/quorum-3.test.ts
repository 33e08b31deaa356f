import { quorum } from './quorum-fixture.js'
import { contractSuite } from './suite.js'

contractSuite(quorum, { part: 3, of: 3 })
