"""The models: scikit-learn classifiers whose fitted state is a risk form."""
