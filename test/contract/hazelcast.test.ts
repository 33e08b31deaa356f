import { contractSuite } from './suite.js'
import { hazelcast } from './hazelcast-fixture.js'

contractSuite(hazelcast)
