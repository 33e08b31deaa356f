import { hazelcastCp } from '../contract/hazelcast-cp-fixture.js'
import { contractSuite } from '../contract/suite.js'

contractSuite(hazelcastCp)
