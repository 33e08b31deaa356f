import { quorum } from '../contract/quorum-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(quorum)
