"""The experiments of the AHS paper (Huang, Liang 2017), sections 5.1 to 5.4, and some of ours."""
